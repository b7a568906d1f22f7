import { commandLine } from 'svc/sdk'
import type { ProviderKeys } from '../../providers/contract.ts'
import type { Run } from './run.ts'

/** Longer than any key of a provider, and shorter than what is none. */
const MAX_KEY = 8_192

/** Keys of providers that have none here, into the vault. They are shown by the name of their provider only. */
export async function importKeys(run: Run, keys: ProviderKeys | undefined): Promise<void> {
  const seen = new Set<string>()
  for (const source of run.home.keys) {
    const provider = source.provider ?? (source.variable && (await keys?.named(source.variable)))
    // Most variables have nothing to do with a provider.
    if (provider === undefined || provider === '' || seen.has(provider)) {
      run.done++
      continue
    }
    seen.add(provider)
    await run.attempt('key', provider, () => importKey(run, provider, source.value, keys))
  }
}

async function importKey(run: Run, provider: string, value: string, keys: ProviderKeys | undefined): Promise<void> {
  if (!keys) return run.leave('key', provider, 'the plugin "providers" is not loaded')
  if ((await run.before('key', provider, provider)) !== undefined) return
  if (value.length > MAX_KEY || /[\s\p{Cc}]/u.test(value)) return run.leave('key', provider, 'what is there is no key')
  const outcome = await keys.add(provider, value, { isCheck: true })
  const wasBegun = await run.wasBegun('key', provider)
  if (outcome === 'unknown') return run.leave('key', provider, 'there is no provider of this name here')
  if (outcome === 'no_key_needed') return run.leave('key', provider, 'this provider needs no key')
  if (outcome === 'configured' && !wasBegun)
    return run.leave('key', provider, `it has a key here: ${commandLine(`providers set-key ${provider}`)} replaces it`)
  if (!run.isDryRun) {
    await run.begin('key', provider, provider)
    await keys.add(provider, value)
    await run.keep('key', provider, provider, provider)
  }
  run.made('key', provider, 'the vault')
}
