import type * as Ed25519 from './ed25519.ts'
import type { RowProofs, RowProofsDeps } from './row-proof.ts'

/** What checks signatures, evaluated with the first of them. */
export const verifyEd25519 = async (
  ...args: Parameters<typeof Ed25519.verifyEd25519>
): Promise<ReturnType<typeof Ed25519.verifyEd25519>> => (await import('./ed25519.ts')).verifyEd25519(...args)

/** Codes of rows, by code that is evaluated with the first of them. */
export function rowProofs(deps: RowProofsDeps): Pick<RowProofs, 'of' | 'holds'> {
  let made: Promise<RowProofs> | undefined
  const load = (): Promise<RowProofs> => (made ??= import('./row-proof.ts').then((it) => new it.RowProofs(deps)))
  return {
    of: async (fields) => (await load()).of(fields),
    holds: async (fields, proof) => (await load()).holds(fields, proof),
  }
}
