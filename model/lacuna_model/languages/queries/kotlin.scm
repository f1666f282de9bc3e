(class_declaration name: (identifier) @name) @class
(object_declaration name: (identifier) @name) @class
(function_declaration name: (identifier) @name (function_body)? @body) @function
(source_file (property_declaration (variable_declaration (identifier) @name)) @value)
(class_body (property_declaration (variable_declaration (identifier) @name)) @value)
(type_alias type: (identifier) @name) @value
