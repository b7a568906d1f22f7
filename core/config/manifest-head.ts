import { parseToml } from './toml-text.ts'

/** Name and version of an agent's manifest, with the defaults it gets when it says nothing. Throws what the TOML parser throws. */
export function manifestHead(toml: string): { readonly name: string; readonly version: string } {
  const { name, version } = parseToml(toml)
  return {
    name: typeof name === 'string' && name.trim() !== '' ? name.trim() : 'unnamed',
    version: typeof version === 'string' && version !== '' ? version : '0.1.0',
  }
}
