/**
 * What a QR code of the pairing holds: with the address where one is configured, so that nothing but the code has to be
 * scanned.
 */
export function linkOf(code: string, expiresAt: string, baseUrl: string | undefined): string {
  if (baseUrl === undefined) return `svc://pair?token=${code}`
  const payload = Buffer.from(JSON.stringify({ v: 1, base_url: baseUrl, token: code, expires_at: expiresAt })).toString(
    'base64url',
  )
  return `svc://pair?payload=${payload}`
}
