(function_declaration name: (identifier) @name body: (_) @body) @function
(generator_function_declaration name: (identifier) @name body: (_) @body) @function
(method_definition name: (property_identifier) @name body: (_) @body) @function
(class_declaration name: (_) @name body: (_) @body) @class
(lexical_declaration
  (variable_declarator name: (identifier) @name value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)])) @function
(program (lexical_declaration (variable_declarator name: (identifier) @name)) @value)
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name)) @value))
