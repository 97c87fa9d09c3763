(class_declaration name: (_) @name) @class
(abstract_class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(type_alias_declaration name: (_) @name) @type
(enum_declaration name: (_) @name) @enum
(internal_module name: (_) @name) @module
(module name: (identifier) @name) @module
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(function_signature name: (identifier) @name) @function
(method_definition name: (_) @name) @method
(method_signature name: (_) @name) @method
(abstract_method_signature name: (_) @name) @method
(public_field_definition name: (_) @name value: [(arrow_function) (function_expression)]) @method
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @function
(program (lexical_declaration (variable_declarator name: (identifier) @name) @constant))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @constant)))
(program (variable_declaration (variable_declarator name: (identifier) @name) @constant))
(arguments (function_expression name: (identifier) @name) @function)
(return_statement (function_expression name: (identifier) @name) @function)
(ambient_declaration (lexical_declaration (variable_declarator name: (identifier) @name) @constant))
(ambient_declaration (variable_declaration (variable_declarator name: (identifier) @name) @constant))
(import_statement) @import
(export_statement source: (string)) @import
(call_expression function: (identifier) @_require arguments: (arguments . (string)) (#eq? @_require "require")) @import
(call_expression function: (import) arguments: (arguments . (string))) @import
; references
(type_identifier) @ref
(call_expression function: (identifier) @ref)
(new_expression constructor: (identifier) @ref)
(member_expression property: (_) @ref)
(member_expression object: (identifier) @ref)
(extends_clause (identifier) @ref)
(decorator (identifier) @ref)
(arguments (identifier) @ref)
(import_specifier name: (identifier) @ref)
(import_clause (identifier) @ref)
(export_specifier name: (identifier) @ref)
(pair value: (identifier) @ref)
(shorthand_property_identifier) @ref
(variable_declarator value: (identifier) @ref)
(assignment_expression right: (identifier) @ref)
(return_statement (identifier) @ref)
(array (identifier) @ref)
(binary_expression (identifier) @ref)
