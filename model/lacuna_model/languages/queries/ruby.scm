(method name: (identifier) @name body: (_)? @body) @function
(singleton_method name: (identifier) @name body: (_)? @body) @function
(class name: (constant) @name body: (_)? @body) @class
(module name: (constant) @name body: (_)? @body) @module
