-- A linked list.
local List = {}
List.__index = List

function List.new(...)
  local self = setmetatable({ size = 0 }, List)
  for _, value in ipairs({ ... }) do
    self:push(value)
  end
  return self
end

function List:push(value)
  self.head = { value = value, next = self.head }
  self.size = self.size + 1
  return self
end

function List:find(test)
  local node = self.head
  while node do
    if test(node.value) then
      return node.value
    elseif node.next == nil then
      break
    end
    node = node.next
  end
  return nil, "not found"
end

local list = List.new(1, 2, 3)
print(list:find(function(value) return value > 1 end), #"text")
return List
