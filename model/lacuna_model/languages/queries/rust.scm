(function_item name: (identifier) @name body: (_) @body) @function
(function_signature_item name: (identifier) @name) @function
(macro_definition name: (identifier) @name) @function
(struct_item name: (type_identifier) @name) @class
(enum_item name: (type_identifier) @name body: (_) @body) @class
(union_item name: (type_identifier) @name body: (_) @body) @class
(trait_item name: (type_identifier) @name body: (_) @body) @class
(impl_item type: (type_identifier) @name body: (_) @body) @class
(impl_item type: (generic_type type: (type_identifier) @name) body: (_) @body) @class
(type_item name: (type_identifier) @name) @value
(const_item name: (identifier) @name) @value
(static_item name: (identifier) @name) @value
(mod_item name: (identifier) @name body: (_) @body) @module
