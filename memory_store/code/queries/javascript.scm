(class_declaration name: (_) @name) @class
(class name: (_) @name) @class
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(method_definition name: (_) @name) @method
(field_definition property: (_) @name value: [(arrow_function) (function_expression)]) @method
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @function
(assignment_expression left: (member_expression property: (property_identifier) @name) right: [(arrow_function) (function_expression)]) @function
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @method
(program (lexical_declaration (variable_declarator name: (identifier) @name) @constant))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @constant)))
(program (variable_declaration (variable_declarator name: (identifier) @name) @constant))
(arguments (function_expression name: (identifier) @name) @function)
(return_statement (function_expression name: (identifier) @name) @function)
(import_statement) @import
(export_statement source: (string)) @import
(call_expression function: (identifier) @_require arguments: (arguments . (string)) (#eq? @_require "require")) @import
(call_expression function: (import) arguments: (arguments . (string))) @import
; references
(call_expression function: (identifier) @ref)
(new_expression constructor: (identifier) @ref)
(member_expression property: (_) @ref)
(member_expression object: (identifier) @ref)
(class_heritage (identifier) @ref)
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
