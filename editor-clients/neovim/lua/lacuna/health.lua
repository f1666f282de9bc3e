-- :checkhealth lacuna

local M = {}

function M.check()
  local server = require('lacuna.server')
  local health = vim.health
  health.start('lacuna')
  if vim.lsp.is_enabled then
    health.ok('Neovim is 0.11.2 or newer')
  else
    health.error('Neovim 0.11.2 or newer is needed')
    return
  end
  local problem, setup = server.problem(), require('lacuna.setup')
  if not problem and setup.is_old() then
    health.warn('the language server is not of this version of the plugin', { 'install the other one: :Lacuna setup' })
  elseif problem then
    health.error(problem, {
      'let the plugin install it: :Lacuna setup',
      'or install it: pip install . in a clone of Lacuna',
      "or say where it is: vim.lsp.config('lacuna', { cmd = { '/path/to/lacuna-lsp' } })",
    })
  else
    health.ok('the language server is there: ' .. vim.inspect(vim.lsp.config.lacuna.cmd))
  end
  if setup.python() then
    health.ok('Python 3.11 or newer is there, or uv, which :Lacuna setup installs with')
  elseif problem then
    health.error('neither uv nor Python 3.11 or newer is on the path', { 'install one of them for :Lacuna setup' })
  end
  if not vim.lsp.is_enabled('lacuna') then
    health.warn("it is not enabled: put vim.lsp.enable('lacuna') into your init.lua")
  end
  local clients = vim.lsp.get_clients({ name = 'lacuna' })
  for _, client in ipairs(clients) do
    local status = require('lacuna.status')
    local news, where = status.news(client), ('running in %s: '):format(client.root_dir or 'no folder')
    if news.health == 'error' then
      health.error(('%s%s: %s'):format(where, news.state, news.message), news.advice)
    else
      health.ok(where .. status.state(client))
    end
  end
  if #clients == 0 then
    health.info('it is not running; it starts with the first file that is opened')
  end
end

return M
