(class_declaration name: (identifier) @name body: (_) @body) @class
(struct_declaration name: (identifier) @name body: (_) @body) @class
(record_declaration name: (identifier) @name body: (_)? @body) @class
(interface_declaration name: (identifier) @name body: (_) @body) @class
(enum_declaration name: (identifier) @name body: (_) @body) @class
(method_declaration name: (identifier) @name body: (_)? @body) @function
(constructor_declaration name: (identifier) @name body: (_) @body) @function
