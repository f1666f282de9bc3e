-- Used by `vim.lsp.enable('lacuna')`; `vim.lsp.config('lacuna', { cmd = ..., settings = ... })` overrides it.

-- Neovim only logs that a command is missing, so check it here.
require('lacuna.server').check_once()

---@type vim.lsp.Config
return {
  cmd = require('lacuna.setup').command(),
  root_markers = { '.git', '.lacunaignore' },
  -- Neovim sends settings only after the server may have started the engine, and some are for its start.
  before_init = function(params, config)
    local settings = vim.tbl_get(config, 'settings', 'lacuna')
    if settings and next(settings) then
      params.initializationOptions = settings
    end
  end,
  on_init = function(client)
    require('lacuna.documents').separate(client)
  end,
  capabilities = {
    textDocument = { inlineCompletion = { dynamicRegistration = false } },
    workspace = {
      workspaceEdit = {
        documentChanges = true,
        changeAnnotationSupport = { groupsOnLabel = false },
      },
    },
    experimental = { serverStatusNotification = true, lacunaInstructions = true },
  },
  commands = {
    ['lacuna.edit'] = function(command)
      require('lacuna.commands').edit(command.arguments[1])
    end,
  },
  handlers = {
    ['experimental/serverStatus'] = require('lacuna.status').told,
    ['workspace/applyEdit'] = require('lacuna.edits').apply,
    ['window/showMessage'] = require('lacuna.status').message,
  },
}
