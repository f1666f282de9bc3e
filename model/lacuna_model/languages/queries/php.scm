(function_definition name: (name) @name body: (_) @body) @function
(class_declaration name: (name) @name body: (_) @body) @class
(interface_declaration name: (name) @name body: (_) @body) @class
(trait_declaration name: (name) @name body: (_) @body) @class
(enum_declaration name: (name) @name body: (_) @body) @class
(method_declaration name: (name) @name body: (_)? @body) @function
