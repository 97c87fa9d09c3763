(package_clause name: (_) @package)
(class_definition name: (_) @name) @class
(trait_definition name: (_) @name) @interface
(object_definition name: (_) @name) @class
(enum_definition name: (_) @name) @enum
(function_definition name: (_) @name) @function
(function_declaration name: (_) @name) @function
(type_definition name: (_) @name) @type
(template_body (val_definition pattern: (identifier) @name) @constant)
(import_declaration) @import
; references
(type_identifier) @ref
(call_expression function: (identifier) @ref)
(call_expression function: (generic_function function: (identifier) @ref))
(field_expression field: (identifier) @ref)
(field_expression value: (identifier) @ref)
(arguments (identifier) @ref)
(infix_expression operator: (identifier) @ref)
(annotation name: (type_identifier) @ref)
