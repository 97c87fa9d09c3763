(function_definition declarator: (function_declarator declarator: (_) @name (#not-match? @name "^(if|for|while|switch|catch|return)$"))) @function
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name))) @function
(function_definition declarator: (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name)))) @function
(declaration declarator: (function_declarator declarator: (identifier) @name)) @declaration
(declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @declaration
(struct_specifier name: (_) @name body: (_)) @struct
(union_specifier name: (_) @name body: (_)) @struct
(enum_specifier name: (_) @name body: (_)) @enum
(type_definition declarator: (type_identifier) @name) @type
(type_definition declarator: (pointer_declarator declarator: (type_identifier) @name)) @type
(type_definition declarator: (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (type_identifier) @name)))) @type
(preproc_def name: (identifier) @name) @macro
(preproc_function_def name: (identifier) @name) @macro
(translation_unit (declaration declarator: (init_declarator declarator: (identifier) @name)) @constant)
(translation_unit (declaration declarator: (init_declarator declarator: (array_declarator declarator: (identifier) @name))) @constant)
(preproc_include path: (_) @import)
(function_definition declarator: (reference_declarator (function_declarator declarator: (_) @name))) @function
(field_declaration declarator: (function_declarator declarator: (field_identifier) @name)) @declaration
(class_specifier name: (_) @name body: (_)) @class
(namespace_definition name: (_) @name) @module
(alias_declaration name: (_) @name) @type
(concept_definition name: (_) @name) @type
; references
(qualified_identifier name: (identifier) @ref)
(qualified_identifier scope: (namespace_identifier) @ref)
(template_function name: (identifier) @ref)
(type_identifier) @ref
(call_expression function: (identifier) @ref)
(call_expression function: (field_expression field: (field_identifier) @ref))
(field_expression field: (field_identifier) @ref)
(argument_list (identifier) @ref)
(return_statement (identifier) @ref)
(binary_expression (identifier) @ref)
(init_declarator value: (identifier) @ref)
(assignment_expression right: (identifier) @ref)
(initializer_list (identifier) @ref)
(pointer_expression argument: (identifier) @ref)
(preproc_ifdef name: (identifier) @ref)
(preproc_defined (identifier) @ref)
