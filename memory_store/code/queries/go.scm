(package_clause (package_identifier) @package)
(function_declaration name: (identifier) @name) @function
(method_declaration receiver: (parameter_list (parameter_declaration type: (_) @container)) name: (field_identifier) @name) @method
(type_spec name: (type_identifier) @name type: (struct_type)) @struct
(type_spec name: (type_identifier) @name type: (interface_type)) @interface
(type_spec name: (type_identifier) @name) @type
(type_alias name: (type_identifier) @name) @type
(method_elem name: (field_identifier) @name) @method
(source_file (const_declaration (const_spec name: (identifier) @name) @constant))
(source_file (var_declaration (var_spec name: (identifier) @name) @constant))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @constant)))
(import_spec path: (_) @import)
; references
(type_identifier) @ref
(field_identifier) @ref
(call_expression function: (identifier) @ref)
(selector_expression operand: (identifier) @ref)
(argument_list (identifier) @ref)
(keyed_element (literal_element (identifier) @ref))
(expression_list (identifier) @ref)
(binary_expression (identifier) @ref)
(unary_expression (identifier) @ref)
