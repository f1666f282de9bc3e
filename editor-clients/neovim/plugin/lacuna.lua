-- Defines the commands, keys and events. Neovim loads the modules when they are first used.

if not vim.lsp.is_enabled then
  vim.notify_once('Lacuna needs Neovim 0.11.2 or newer', vim.log.levels.WARN)
  return
end

local suggestion = function(action, ...)
  local arguments = { ... }
  return function()
    require('lacuna.suggestion')[action](unpack(arguments))
  end
end

local next_edit = function(action)
  return function()
    require('lacuna.next_edit')[action]()
  end
end

vim.api.nvim_set_hl(0, 'LacunaSuggestion', { link = 'Comment', default = true })
vim.api.nvim_set_hl(0, 'LacunaCount', { link = 'NonText', default = true })
vim.api.nvim_set_hl(0, 'LacunaMark', { link = 'Visual', default = true })
vim.api.nvim_set_hl(0, 'LacunaError', { link = 'ErrorMsg', default = true })

vim.keymap.set('i', '<Plug>(lacuna-accept)', suggestion('accept'))
vim.keymap.set('i', '<Plug>(lacuna-accept-word)', suggestion('accept_part', 'word'))
vim.keymap.set('i', '<Plug>(lacuna-accept-line)', suggestion('accept_part', 'line'))
vim.keymap.set('i', '<Plug>(lacuna-next)', suggestion('cycle', 1))
vim.keymap.set('i', '<Plug>(lacuna-previous)', suggestion('cycle', -1))
vim.keymap.set('i', '<Plug>(lacuna-dismiss)', suggestion('dismiss'))
vim.keymap.set('i', '<Plug>(lacuna-suggest)', suggestion('request'))
vim.keymap.set('n', '<Plug>(lacuna-next-edit)', next_edit('accept'))
vim.keymap.set('n', '<Plug>(lacuna-dismiss-edit)', next_edit('dismiss'))
vim.keymap.set({ 'n', 'i' }, '<Plug>(lacuna-mark)', '<Cmd>Lacuna mark<CR>')
vim.keymap.set('x', '<Plug>(lacuna-mark)', ':Lacuna mark<CR>', { silent = true })
vim.keymap.set('n', '<Plug>(lacuna-fill)', '<Cmd>Lacuna fill<CR>')
vim.keymap.set('x', '<Plug>(lacuna-fill)', ':Lacuna fill<CR>', { silent = true })
vim.keymap.set({ 'n', 'x' }, '<Plug>(lacuna-regenerate)', ':Lacuna regenerate<CR>', { silent = true })
vim.keymap.set({ 'n', 'x' }, '<Plug>(lacuna-edit)', ':Lacuna edit<CR>', { silent = true })
require('lacuna.keys').setup()

vim.api.nvim_create_user_command('Lacuna', function(command)
  require('lacuna.commands').run(command)
end, {
  desc = 'Fill gaps in code',
  nargs = '*',
  range = true,
  complete = function(...)
    return require('lacuna.commands').complete(...)
  end,
})

local group = vim.api.nvim_create_augroup('lacuna', {})
local on = function(events, callback)
  vim.api.nvim_create_autocmd(events, { group = group, callback = callback })
end
vim.api.nvim_create_autocmd('BufReadPre', {
  group = group,
  once = true,
  callback = function(event)
    require('lacuna.server').begin(event.buf)
  end,
})
on({ 'TextChangedI', 'TextChangedP', 'CursorMovedI' }, suggestion('follow'))
-- These events come before the client list, the mode or the menu has changed, so handle them afterwards.
on({ 'LspAttach', 'InsertEnter', 'CompleteChanged', 'CompleteDone' }, vim.schedule_wrap(suggestion('follow')))
on({ 'BufLeave', 'LspDetach' }, suggestion('hide'))
on({ 'TextChanged' }, next_edit('changed'))
on({ 'InsertEnter', 'BufLeave', 'LspDetach', 'RecordingEnter' }, next_edit('hide'))
on('CursorMoved', next_edit('moved'))
-- Insert mode may end without InsertLeave, as by <C-c>.
vim.api.nvim_create_autocmd('ModeChanged', {
  group = group,
  pattern = 'i*:[^i]*',
  callback = function()
    suggestion('hide')()
    next_edit('changed')()
  end,
})
-- `:write NAME` gives a buffer its first name as if it were wiped out and made anew.
on({ 'BufFilePre', 'BufWipeout' }, function(event)
  if event.event == 'BufFilePre' or vim.api.nvim_buf_get_name(event.buf) == '' then
    require('lacuna.documents').renaming(event.buf)
  end
end)
on(
  { 'LspAttach', 'BufEnter', 'CursorMoved' },
  vim.schedule_wrap(function()
    require('lacuna.server').focus()
  end)
)
on('LspProgress', function(event)
  require('lacuna.status').working(event)
end)
