(interface_declaration name: (type_identifier) @name body: (_) @body) @class
(enum_declaration name: (identifier) @name body: (_) @body) @class
(abstract_class_declaration name: (type_identifier) @name body: (_) @body) @class
(type_alias_declaration name: (type_identifier) @name) @value
(internal_module name: (identifier) @name body: (_) @body) @module
