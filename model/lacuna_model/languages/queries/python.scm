(function_definition name: (identifier) @name body: (block) @body) @function
(class_definition name: (identifier) @name body: (block) @body) @class
(module (expression_statement (assignment left: (identifier) @name)) @value)
(type_alias_statement left: (type (identifier) @name)) @value

(function_definition body: (block . (expression_statement (string) @doc)))
(class_definition body: (block . (expression_statement (string) @doc)))
