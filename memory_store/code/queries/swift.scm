(class_declaration name: (type_identifier) @name) @class
(class_declaration name: (user_type) @name) @within
(protocol_declaration name: (_) @name) @interface
(function_declaration name: (simple_identifier) @name) @function
(protocol_function_declaration name: (simple_identifier) @name) @function
(init_declaration "init" @name) @method
(typealias_declaration name: (type_identifier) @name) @type
(source_file (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @constant)
(import_declaration) @import
; references
(type_identifier) @ref
(call_expression (simple_identifier) @ref)
(navigation_suffix suffix: (simple_identifier) @ref)
(navigation_expression target: (simple_identifier) @ref)
(value_argument value: (simple_identifier) @ref)
