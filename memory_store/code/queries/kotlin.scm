(package_header (qualified_identifier) @package)
(class_declaration name: (_) @name) @class
(object_declaration name: (_) @name) @class
(function_declaration name: (_) @name) @function
(type_alias type: (identifier) @name) @type
(companion_object name: (_) @name) @class
(source_file (property_declaration (variable_declaration (identifier) @name)) @constant)
(property_declaration (modifiers (property_modifier "const")) (variable_declaration (identifier) @name)) @constant
(import) @import
; references
(user_type (identifier) @ref)
(call_expression . (identifier) @ref)
(navigation_expression (identifier) @ref)
(value_argument (identifier) @ref)
(callable_reference (identifier) @ref)
(annotation (user_type (identifier) @ref))
