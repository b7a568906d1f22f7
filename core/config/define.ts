import type { ConfigInput } from './schema.ts'

/**
 * Types the configuration in `svc.config.ts`; it returns its argument. Secrets belong into `config.toml` or the
 * environment.
 */
export function defineConfig(config: ConfigInput): ConfigInput {
  return config
}
