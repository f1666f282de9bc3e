(function_declaration name: (identifier) @name body: (_)? @body) @function
(function_declaration name: (dot_index_expression field: (identifier) @name) body: (_)? @body) @function
(function_declaration name: (method_index_expression method: (identifier) @name) body: (_)? @body) @function
(assignment_statement
  (variable_list name: (dot_index_expression field: (identifier) @name))
  (expression_list value: (function_definition body: (_)? @body))) @function
