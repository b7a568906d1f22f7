import type { OutboundCase } from './outbound-test.ts'

/**
 * Tests the guard of outbound requests against a local listener; see `outbound-test.ts`, which is imported with the
 * first call.
 */
export async function testOutbound(signal: AbortSignal): Promise<readonly OutboundCase[]> {
  return (await import('./outbound-test.ts')).testOutbound(signal)
}
