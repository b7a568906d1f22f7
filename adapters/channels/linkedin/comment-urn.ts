/** The parts of the URN of a comment; `undefined` when it is none. */
export function partsOf(urn: string | undefined): { readonly post: string; readonly id: string } | undefined {
  const [, post, id] = /^urn:li:comment:\(([^,]+),(\d+)\)$/.exec(urn ?? '') ?? []
  if (post === undefined || id === undefined) return undefined
  // Notifications leave out the beginning of the inner one.
  return { post: post.startsWith('urn:li:') ? post : `urn:li:${post}`, id }
}

/** The URN in the form that comments themselves have. */
export function wholeUrn(urn: string): string {
  const parts = partsOf(urn)
  return parts ? `urn:li:comment:(${parts.post},${parts.id})` : urn
}
