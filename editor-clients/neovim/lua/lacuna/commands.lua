-- The subcommands of :Lacuna.

local documents = require('lacuna.documents')
local regions = require('lacuna.regions')
local server = require('lacuna.server')

local M = {}

local namespace = vim.api.nvim_create_namespace('lacuna.status')

local function document()
  return { uri = documents.uri(0) }
end

local function encoding()
  local client = server.client()
  return client and client.offset_encoding or 'utf-16'
end

local function position()
  return vim.lsp.util.make_position_params(0, encoding()).position
end

--- Report what was not edited, and why if nobody has said it yet.
local function outcome(answer)
  local left = answer.left or answer.failed or 0
  if answer.status == 'nothing' then
    server.say('nothing was found that fits')
  elseif left > 0 then
    server.say(('%d places are left as they were'):format(left))
  end
end

--- Show text in a window at the cursor, and return its buffer; if it is shown already and has an `id`, go there.
---@param title string
---@param lines string[]
---@param syntax string
---@param id? string
---@return integer
local function window(title, lines, syntax, id)
  local look = { title = (' %s '):format(title), border = 'rounded', focus_id = id }
  return (vim.lsp.util.open_floating_preview(lines, syntax, look))
end

--- Let the user choose an item, shown as `line` returns it; `done` gets the item, or nil if none was chosen.
local function choose(question, items, line, done)
  vim.ui.select(items, { prompt = 'Lacuna: ' .. question, kind = 'lacuna', format_item = line }, done)
end

---@class lacuna.Command
---@field run fun(command: table, arguments: string[])
---@field words? string[] its possible arguments
---@field alone? boolean it needs no language server

local commands = {} ---@type table<string, lacuna.Command>

commands.fill = {
  words = { 'markers', 'bodies' },
  run = function(command, arguments)
    local buf, wanted = vim.api.nvim_get_current_buf(), { textDocument = document() }
    local range = function(region)
      return regions.range(region, encoding())
    end
    local given = command.range > 0 and regions.of(command) or regions.marked()
    if arguments[1] or #given == 0 then
      wanted.select = arguments[1] or 'markers'
      wanted.within = command.range > 0 and range(given[1]) or nil
    else
      wanted.ranges = vim.tbl_map(range, given)
    end
    server.execute('fillRegions', wanted, function(answer)
      if wanted.ranges and answer.status == 'applied' then
        regions.unmark(buf)
      end
      outcome(answer)
    end)
  end,
}

commands.setup = {
  alone = true,
  run = function()
    require('lacuna.setup').start()
  end,
}

commands.mark = { alone = true, run = regions.mark }

commands.unmark = {
  alone = true,
  run = function()
    regions.unmark(0)
  end,
}

--- The diagnostics of a region's lines.
local function diagnostics(region)
  local found = vim.tbl_filter(function(one)
    return region.row <= one.lnum and one.lnum <= region.end_row
  end, vim.diagnostic.get(0))
  return vim.tbl_map(function(one)
    return { line = one.lnum, message = one.message }
  end, found)
end

commands.regenerate = {
  run = function(command)
    local buf, tick, units = vim.api.nvim_get_current_buf(), vim.b.changedtick, encoding()
    local region = regions.of(command)[1]
    local range = regions.range(region, units)
    local wanted = { textDocument = document(), range = range, choose = false, diagnostics = diagnostics(region) }
    server.execute('regenerate', wanted, function(answer)
      if #answer.alternatives == 0 then
        return server.say('nothing else was found that fits')
      end
      local function in_a_line(text)
        return (text:gsub('%s*\n%s*', ' ⏎ '))
      end
      choose('which one?', answer.alternatives, in_a_line, function(text)
        if text and vim.b[buf].changedtick ~= tick then
          server.say('the text has changed meanwhile', vim.log.levels.WARN)
        elseif text and not vim.bo[buf].modifiable then
          server.say('the buffer is not modifiable', vim.log.levels.WARN)
        elseif text then
          vim.lsp.util.apply_text_edits({ { range = range, newText = text } }, buf, units)
        end
      end)
    end)
  end,
}

--- Rewrite the lines of a range by an instruction; without one, ask the user for it. The edit is previewed.
---@param wanted table the argument of the server's command
function M.edit(wanted)
  local function go(instruction)
    if instruction and vim.trim(instruction) ~= '' then
      server.execute('edit', vim.tbl_extend('force', wanted, { instruction = instruction }), function(answer)
        if answer.status == 'nothing' then
          server.say('there is nothing to change')
        end
      end)
    end
  end
  if wanted.instruction then
    go(wanted.instruction)
  else
    vim.ui.input({ prompt = 'Change these lines: ' }, go)
  end
end

commands.edit = {
  run = function(command, arguments)
    local range = regions.range(regions.of(command)[1], encoding())
    local instruction = #arguments > 0 and table.concat(arguments, ' ') or nil
    M.edit({ textDocument = document(), range = range, instruction = instruction })
  end,
}

commands.propagate = {
  words = { 'file', 'workspace' },
  run = function(_, arguments)
    local wanted = { textDocument = document(), position = position(), scope = arguments[1] }
    server.execute('propagate', wanted, outcome)
  end,
}

commands.refactor = {
  run = function(command, arguments)
    local wanted = { textDocument = command.range > 0 and document() or nil }
    local function go(more)
      server.execute('refactor', vim.tbl_extend('force', wanted, more), outcome)
    end
    local recipe = table.remove(arguments, 1)
    if recipe then
      local settings = vim.empty_dict()
      for _, argument in ipairs(arguments) do
        local name, value = argument:match('^(%w+)=(.*)$')
        if not name then
          return server.say(('%s is no setting of a recipe: write name=value'):format(argument), vim.log.levels.ERROR)
        end
        settings[name] = value
      end
      return go({ recipe = recipe, settings = settings })
    end
    local language = vim.bo.filetype
    vim.ui.input({ prompt = 'Rewrite places like: ' }, function(pattern)
      if not pattern or pattern == '' then
        return
      end
      vim.ui.input({ prompt = 'to (the model fills <<fill>>): ' }, function(template)
        if template and template ~= '' then
          go({ pattern = pattern, template = template, language = language })
        end
      end)
    end)
  end,
}

--- Ask for the settings of a recipe one after the other. `done` gets `given` with every setting as `name=value`.
local function ask(names, meanings, given, done)
  local name = names[1]
  if not name then
    return done(given)
  end
  vim.ui.input({ prompt = ('%s (%s): '):format(name, meanings[name]) }, function(value)
    if value then
      local more = value ~= '' and { ('%s=%s'):format(name, value) } or {}
      ask(vim.list_slice(names, 2), meanings, vim.list_extend(given, more), done)
    end
  end)
end

commands.recipes = {
  run = function(command)
    server.execute('recipes', { textDocument = document() }, function(answer)
      if #answer.recipes == 0 then
        return server.say('there are no recipes for files like this one')
      end
      local function in_words(recipe)
        local there = type(recipe.places) == 'number' and (' (%d here)'):format(recipe.places) or ''
        return ('%s: %s%s'):format(recipe.name, recipe.summary, there)
      end
      choose('which recipe?', answer.recipes, in_words, function(recipe)
        if recipe then
          local names = vim.tbl_keys(recipe.settings)
          table.sort(names)
          ask(names, recipe.settings, { recipe.name }, function(arguments)
            commands.refactor.run(command, arguments)
          end)
        end
      end)
    end)
  end,
}

commands.context = {
  run = function()
    server.execute('showContext', { textDocument = document(), position = position() }, function(answer)
      local lines = { ('%d of %d tokens, from %s'):format(answer.tokens, answer.budget, answer.workspace) }
      for _, snippet in ipairs(answer.snippets) do
        local title = ('## %s: %s (%.2f)'):format(snippet.path, snippet.reason, snippet.score)
        local fence = '```' .. (vim.filetype.match({ filename = snippet.path }) or '')
        vim.list_extend(lines, { '', title, fence })
        vim.list_extend(lines, vim.split(vim.trim(snippet.text), '\n'))
        table.insert(lines, '```')
      end
      window('Lacuna: read of other files', lines, 'markdown', 'lacuna.context')
    end)
  end,
}

commands.status = {
  run = function()
    server.execute('status', nil, function(answer)
      local counts, client = answer.suggestions, assert(server.client())
      local lines = {
        ('Lacuna: %s, %s'):format(require('lacuna.status').state(client), answer.message),
        ('suggestions: %d wanted, %d held back as unsure'):format(counts.wanted, counts.unsure),
        ('%d asked of the engine, %d from the cache'):format(counts.asked, counts.cached),
        ('how much is shown: %s'):format(answer.suggest),
      }
      if answer.snoozedS > 0 then
        table.insert(lines, ('snoozed for another %d s'):format(answer.snoozedS))
      end
      if answer.nothing ~= '' then
        table.insert(lines, ('the last request got nothing: %s'):format(answer.nothing))
      end
      if answer.health == 'error' then
        table.insert(lines, 2, answer.advice)
      end
      local buf = window('Lacuna', lines, '')
      local look = answer.health == 'error' and 'LacunaError' or 'Title'
      vim.api.nvim_buf_set_extmark(buf, namespace, 0, 0, { line_hl_group = look })
    end)
  end,
}

commands.log = {
  run = function()
    server.execute('showLog', nil, function() end)
  end,
}

commands.toggle = {
  words = { 'automatic', 'enabled' },
  run = function(_, arguments)
    server.toggle(arguments[1] or 'enabled')
  end,
}

commands.dial = {
  words = { 'bold', 'normal', 'quiet' },
  run = function(_, arguments)
    local place = arguments[1]
    if not vim.list_contains(commands.dial.words, place) then
      return server.say('say how much: :Lacuna dial quiet, normal or bold', vim.log.levels.ERROR)
    end
    if server.set('suggest', place) then
      server.say(('suggestions are %s'):format(place))
    end
  end,
}

commands.snooze = {
  run = function(_, arguments)
    local minutes = tonumber(arguments[1] or 10)
    if not minutes then
      return server.say('say for how many minutes: :Lacuna snooze 10', vim.log.levels.ERROR)
    end
    server.execute('snooze', { minutes = minutes }, function(answer)
      server.say(answer.minutes > 0 and ('no suggestions for %g minutes'):format(answer.minutes) or 'suggestions go on')
    end)
  end,
}

commands.cancel = {
  alone = true,
  run = function()
    local client = server.client()
    local running = client and vim.tbl_keys(client.progress.pending) or {}
    for _, token in ipairs(running) do
      client:notify('window/workDoneProgress/cancel', { token = token })
    end
    server.say(#running > 0 and 'cancelled, nothing was edited' or 'nothing is running')
  end,
}

commands.restart = { alone = true, run = server.restart }

--- Run `:Lacuna`.
function M.run(command)
  local arguments = vim.deepcopy(command.fargs)
  local name = table.remove(arguments, 1) or 'status'
  local found = commands[name]
  if not found then
    return server.say(('there is no command %s'):format(name), vim.log.levels.ERROR)
  end
  if not found.alone and server.is_starting() then
    return server.once_started(function()
      found.run(command, arguments)
    end)
  end
  found.run(command, arguments)
end

--- Complete the subcommands and their arguments.
---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local name = line:match('Lacuna%s+(%S+)%s')
  local known = vim.tbl_keys(commands)
  if name then
    known = commands[name] and commands[name].words or {}
  end
  local words = vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, known)
  table.sort(words)
  return words
end

return M
