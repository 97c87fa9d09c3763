(namespace_definition name: (_) @package)
(class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(trait_declaration name: (_) @name) @interface
(enum_declaration name: (_) @name) @enum
(method_declaration name: (_) @name) @method
(function_definition name: (_) @name) @function
(const_element (name) @name) @constant
(namespace_use_declaration) @import
(require_expression) @import
(require_once_expression) @import
(include_expression) @import
(include_once_expression) @import
; references
(function_call_expression function: (name) @ref)
(member_call_expression name: (name) @ref)
(nullsafe_member_call_expression name: (name) @ref)
(scoped_call_expression scope: (name) @ref)
(scoped_call_expression name: (name) @ref)
(class_constant_access_expression (name) @ref)
(object_creation_expression (name) @ref)
(member_access_expression name: (name) @ref)
(named_type (name) @ref)
(base_clause (name) @ref)
(class_interface_clause (name) @ref)
(use_declaration (name) @ref)
(qualified_name (name) @ref)
(attribute (name) @ref)
(binary_expression (name) @ref)
