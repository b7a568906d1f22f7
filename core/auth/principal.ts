/** Who makes a request. `operator` holds the API key; `anonymous` calls a daemon that has none, or a public route. */
export interface Principal { readonly kind: 'operator' | 'anonymous' | 'platform' }
