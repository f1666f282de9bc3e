-- Documents of buffers: each buffer without a name is one of its own, and one that gets another name another one.
-- Neovim gives all buffers without a name the URI `file://`.

local M = {}

local NAMELESS = vim.uri_from_fname('')
local OWN = 'untitled:Untitled-%d'

---@param buf integer
local function has_name(buf)
  return vim.api.nvim_buf_get_name(buf) ~= ''
end

--- The URI of a buffer's document.
---@param buf integer
---@return string
function M.uri(buf)
  buf = buf == 0 and vim.api.nvim_get_current_buf() or buf
  return has_name(buf) and vim.uri_from_bufnr(buf) or OWN:format(buf)
end

--- The buffer of a document.
---@param uri string
---@return integer
function M.buffer(uri)
  local buf = tonumber(uri:match('^untitled:Untitled%-(%d+)$'))
  return buf and vim.api.nvim_buf_is_valid(buf) and buf or vim.uri_to_bufnr(uri)
end

---@param buf integer
---@return string
local function text(buf)
  local newline = vim.bo[buf].fileformat == 'dos' and '\r\n' or '\n'
  return table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, true), newline) .. (vim.bo[buf].eol and newline or '')
end

--- The messages by which a server has a buffer's text. They do not say which buffer without a name they are of, so that
--- the server gets the whole texts of these.
local TEXTS = {}
for _, event in ipairs({ 'Open', 'Change', 'Save', 'Close' }) do
  TEXTS['textDocument/did' .. event] = true
end

--- Let a client have each buffer without a name under a URI of its own.
---@param client vim.lsp.Client
function M.separate(client)
  local rpc, sent = client.rpc, {} ---@type table<integer, integer> the versions that the server has, by buffer
  local notify, request = rpc.notify, rpc.request

  local function open_or_change(buf)
    local version = vim.lsp.util.buf_versions[buf] or 0
    if sent[buf] == version then
      return
    end
    local document = { uri = M.uri(buf), version = version }
    if sent[buf] then
      notify('textDocument/didChange', { textDocument = document, contentChanges = { { text = text(buf) } } })
    else
      document.text, document.languageId = text(buf), vim.bo[buf].filetype
      notify('textDocument/didOpen', { textDocument = document })
    end
    sent[buf] = version
  end

  local function update()
    for buf in pairs(sent) do
      if not client.attached_buffers[buf] or has_name(buf) then
        notify('textDocument/didClose', { textDocument = { uri = OWN:format(buf) } })
        sent[buf] = nil
      end
    end
    for buf in pairs(client.attached_buffers) do
      if vim.api.nvim_buf_is_loaded(buf) and not has_name(buf) then
        open_or_change(buf)
      end
    end
  end

  local function is_nameless(params)
    return vim.tbl_get(params or {}, 'textDocument', 'uri') == NAMELESS
  end

  --- Parameters about the current buffer, which has no name.
  local function here(params)
    update()
    return vim.tbl_extend('force', params, { textDocument = { uri = M.uri(0) } })
  end

  function rpc.notify(method, params)
    if not is_nameless(params) then
      return notify(method, params)
    elseif not TEXTS[method] then
      return notify(method, here(params))
    elseif method == 'textDocument/didClose' then
      vim.schedule(update) -- the buffer is still attached
    else
      update()
    end
    return true
  end

  function rpc.request(method, params, ...)
    return request(method, is_nameless(params) and here(params) or params, ...)
  end
end

--- Handle a buffer that is about to get another name: for the server it becomes another document.
---@param buf integer
function M.renaming(buf)
  for _, client in ipairs(vim.lsp.get_clients({ name = 'lacuna', bufnr = buf })) do
    vim.lsp.buf_detach_client(buf, client.id)
    local function attach()
      if vim.api.nvim_buf_is_loaded(buf) and not client:is_stopped() then
        vim.lsp.buf_attach_client(buf, client.id)
      end
    end
    vim.api.nvim_create_autocmd({ 'BufFilePost', 'BufNew' }, { buffer = buf, once = true, callback = attach })
    vim.schedule(attach) -- if it has kept its name
  end
end

return M
