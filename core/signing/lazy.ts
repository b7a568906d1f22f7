/** Signing and checking of manifests; imported when one is signed or checked for the first time. */
export const manifestSigning = () => import('./envelope.ts')
