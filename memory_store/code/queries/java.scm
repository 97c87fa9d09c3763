(package_declaration (_) @package)
(class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(enum_declaration name: (_) @name) @enum
(record_declaration name: (_) @name) @class
(annotation_type_declaration name: (_) @name) @interface
(method_declaration name: (_) @name) @method
(annotation_type_element_declaration name: (_) @name) @method
(constructor_declaration name: (_) @name) @method
(field_declaration (modifiers "static" "final") declarator: (variable_declarator name: (_) @name)) @constant
(import_declaration) @import
; references
(type_identifier) @ref
(method_invocation name: (identifier) @ref)
(method_invocation object: (identifier) @ref)
(field_access field: (identifier) @ref)
(field_access object: (identifier) @ref)
(marker_annotation name: (identifier) @ref)
(annotation name: (identifier) @ref)
(method_reference (identifier) @ref)
(argument_list (identifier) @ref)
(scoped_identifier name: (identifier) @ref)
