/** What `JSON.parse` returns. Tests read answers without a schema: what they expect of them is the check. */
export type Json = ReturnType<JSON['parse']>
