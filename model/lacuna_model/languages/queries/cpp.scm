(class_specifier name: (type_identifier) @name body: (_) @body) @class
(function_definition declarator: (function_declarator declarator: (field_identifier) @name) body: (_) @body) @function
(function_definition
  declarator: (function_declarator declarator: (qualified_identifier name: (identifier) @name)) body: (_) @body) @function
(function_definition
  declarator: (reference_declarator (function_declarator declarator: (field_identifier) @name)) body: (_) @body) @function
(field_declaration declarator: (function_declarator declarator: (field_identifier) @name)) @function
(alias_declaration name: (type_identifier) @name) @value
(namespace_definition name: (namespace_identifier) @name body: (_) @body) @module
