(class_definition name: (identifier) @name) @class
(function_definition name: (identifier) @name) @function
(type_alias_statement left: (type (identifier) @name)) @type
(module (expression_statement (assignment left: (identifier) @name) @constant))
(import_statement) @import
(import_from_statement) @import
; references
(call function: (identifier) @ref)
(attribute attribute: (identifier) @ref)
(attribute object: (identifier) @ref)
(decorator (identifier) @ref)
(type (identifier) @ref)
(type (generic_type (identifier) @ref))
(argument_list (identifier) @ref)
(keyword_argument value: (identifier) @ref)
(typed_default_parameter value: (identifier) @ref)
(default_parameter value: (identifier) @ref)
(assignment right: (identifier) @ref)
(return_statement (identifier) @ref)
(except_clause (identifier) @ref)
(import_from_statement name: (dotted_name (identifier) @ref))
(import_from_statement name: (aliased_import name: (dotted_name (identifier) @ref)))
(comparison_operator (identifier) @ref)
(pair value: (identifier) @ref)
(list (identifier) @ref)
(tuple (identifier) @ref)
(subscript value: (identifier) @ref)
