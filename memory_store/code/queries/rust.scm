(struct_item name: (_) @name) @struct
(enum_item name: (_) @name) @enum
(union_item name: (_) @name) @struct
(trait_item name: (_) @name) @interface
(type_item name: (_) @name) @type
(mod_item name: (_) @name body: (_)) @module
(macro_definition name: (_) @name) @macro
(function_item name: (_) @name) @function
(function_signature_item name: (_) @name) @function
(const_item name: (_) @name) @constant
(static_item name: (_) @name) @constant
(impl_item type: (_) @name) @within
(use_declaration) @import
(mod_item name: (_) !body) @import
; references
(type_identifier) @ref
(call_expression function: (identifier) @ref)
(scoped_identifier name: (identifier) @ref)
(scoped_identifier path: (identifier) @ref)
(field_expression field: (field_identifier) @ref)
(macro_invocation macro: (identifier) @ref)
(token_tree (identifier) @ref)
(arguments (identifier) @ref)
(use_list (identifier) @ref)
(use_as_clause path: (identifier) @ref)
(binary_expression (identifier) @ref)
(attribute (identifier) @ref)
