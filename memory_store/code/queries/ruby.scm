(class name: (_) @name) @class
(module name: (_) @name) @module
(method name: (_) @name) @function
(singleton_method name: (_) @name) @function
(assignment left: (constant) @name) @constant
(call method: (identifier) @_require arguments: (argument_list (simple_symbol) @name @property) (#match? @_require "^attr_(reader|writer|accessor)$"))
(alias name: (_) @name) @function
(call method: (identifier) @_require arguments: (argument_list (string)) (#match? @_require "^(require|require_relative|load)$")) @import
; references
(call method: (_) @ref)
(call receiver: (identifier) @ref)
(constant) @ref
(argument_list (identifier) @ref)
(body_statement (identifier) @ref)
(pair value: (identifier) @ref)
