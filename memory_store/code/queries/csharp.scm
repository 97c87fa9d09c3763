(namespace_declaration name: (_) @package)
(file_scoped_namespace_declaration name: (_) @package)
(class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(struct_declaration name: (_) @name) @struct
(enum_declaration name: (_) @name) @enum
(record_declaration name: (_) @name) @class
(delegate_declaration name: (_) @name) @type
(method_declaration name: (_) @name) @method
(constructor_declaration name: (_) @name) @method
(property_declaration name: (_) @name) @property
(local_function_statement name: (_) @name (#not-match? @name "^(if|for|foreach|while|switch|using|lock|catch|return)$")) @function
(field_declaration (modifier "const") (variable_declaration (variable_declarator name: (_) @name))) @constant
(using_directive) @import
; references
(invocation_expression function: (identifier) @ref)
(invocation_expression function: (generic_name (identifier) @ref))
(member_access_expression name: (identifier) @ref)
(member_access_expression name: (generic_name (identifier) @ref))
(member_access_expression expression: (identifier) @ref)
(object_creation_expression type: (identifier) @ref)
(generic_name (identifier) @ref)
(type_argument_list (identifier) @ref)
(base_list (identifier) @ref)
(parameter type: (identifier) @ref)
(variable_declaration type: (identifier) @ref)
(method_declaration returns: (identifier) @ref)
(property_declaration type: (identifier) @ref)
(array_type type: (identifier) @ref)
(nullable_type type: (identifier) @ref)
(cast_expression type: (identifier) @ref)
(attribute name: (identifier) @ref)
(argument (identifier) @ref)
