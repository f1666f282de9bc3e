-- Types commands for the user, so that a macro records what was done and not only a key that had a meaning for a time.

local M = {}

local COMMAND = vim.api.nvim_replace_termcodes('<Cmd>', true, true, true)
local MARK = COMMAND .. 'lua --[[lacuna]]'
local namespace = vim.api.nvim_create_namespace('lacuna.typing')

local passing = {} ---@type table<string, true> keys that a buffer has had only while something was shown in it

--- A key has a meaning only for a time: a macro is to keep what it did, and not the key.
---@param key string
function M.pass(key)
  passing[vim.api.nvim_replace_termcodes(key, true, true, true)] = true
end

--- Run Lua code as if its command had been typed.
---@param code string
local function run(code)
  local keys = ('%s %s\r'):format(MARK, code)
  local typed = keys:sub(1, #COMMAND) .. keys:sub(#COMMAND + 1):gsub('\128', '\128\254X') -- K_SPECIAL in a text
  vim.api.nvim_feedkeys(typed, 'nti', false)
end

--- Tell a macro that the key before had a meaning for a time, and has done all that it does.
function M.done()
  if vim.fn.reg_recording() ~= '' then
    run('')
  end
end

--- Insert text at the cursor, literally, as a separate undo step. The dot repeats it, and a macro replays it.
---@param text string
function M.insert(text)
  local quoted = text:gsub('\r\n', '\n'):gsub('[%c"\\]', function(character)
    return ('\\%03d'):format(character:byte())
  end)
  run(('vim.go.undolevels = vim.go.undolevels; vim.api.nvim_paste("%s", false, -1)'):format(quoted))
end

--- Remove our keys from a recorded macro: what they did stands behind each of them.
---@param register string
local function tidy(register)
  local before = vim.fn.getreginfo(register)
  if not before.regcontents then
    return
  end
  local text = vim.fn.getreg(register)
  local mended = text
  for key in pairs(passing) do
    mended = mended:gsub(vim.pesc(key .. MARK), (MARK:gsub('%%', '%%%%')))
  end
  if mended ~= text then
    vim.fn.setreg(register, mended, before.regtype)
  end
end

--- Handle the end of a recording. The register is written only after that event, and may be replayed by the next key.
function M.recorded()
  local register, done = vim.v.event.regname:lower(), false -- an upper case letter appends
  local function once()
    if not done then
      done = true
      vim.on_key(nil, namespace)
      tidy(register)
    end
  end
  vim.on_key(once, namespace)
  vim.schedule(once)
end

return M
