(function_declaration name: (identifier) @name body: (_) @body) @function
(method_declaration name: (field_identifier) @name body: (_) @body) @function
(type_declaration (type_spec name: (type_identifier) @name type: (_) @body)) @class
(source_file (const_declaration (const_spec name: (identifier) @name) @value))
(source_file (var_declaration (var_spec name: (identifier) @name) @value))
