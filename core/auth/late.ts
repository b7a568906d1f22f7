import type * as Ed25519 from './ed25519.ts'

/** What checks signatures, evaluated with the first of them. */
export const verifyEd25519 = async (
  ...args: Parameters<typeof Ed25519.verifyEd25519>
): Promise<ReturnType<typeof Ed25519.verifyEd25519>> => (await import('./ed25519.ts')).verifyEd25519(...args)
