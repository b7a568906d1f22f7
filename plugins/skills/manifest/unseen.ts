/** What turns text around, and tag characters. */
const UNSEEN = /[\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu

/** A name or a description must not show as another one. */
export const withoutUnseen = (text: string): string => text.replace(UNSEEN, '')
