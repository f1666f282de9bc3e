(function_definition declarator: (function_declarator declarator: (identifier) @name) body: (_) @body) @function
(function_definition
  declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name)) body: (_) @body) @function
(declaration declarator: (function_declarator declarator: (identifier) @name)) @function
(declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @function
(struct_specifier name: (type_identifier) @name body: (_) @body) @class
(union_specifier name: (type_identifier) @name body: (_) @body) @class
(enum_specifier name: (type_identifier) @name body: (_) @body) @class
(type_definition declarator: (type_identifier) @name) @class
(preproc_def name: (identifier) @name) @value
(preproc_function_def name: (identifier) @name) @value
