import type { Dispose } from 'svc/sdk'
import type { McpExports, McpPromptProvider, McpResourceProvider } from './contract.ts'

export type McpChanged = { readonly list: 'tools' | 'resources' | 'prompts' } | { readonly uri: string }

/** What plugins export, and who is told when it changes. */
export class ExportRegistry implements McpExports {
  readonly resourceProviders = new Set<McpResourceProvider>()
  readonly promptProviders = new Set<McpPromptProvider>()
  readonly #listeners = new Set<(changed: McpChanged) => void>()

  resources(provider: McpResourceProvider): Dispose {
    return this.#add(this.resourceProviders, provider, 'resources')
  }
  prompts(provider: McpPromptProvider): Dispose {
    return this.#add(this.promptProviders, provider, 'prompts')
  }
  updated(uri: string): void {
    this.#tell({ uri })
  }
  listChanged(list: 'tools' | 'resources' | 'prompts'): void {
    this.#tell({ list })
  }
  onChanged(listener: (changed: McpChanged) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #add<T>(providers: Set<T>, provider: T, list: 'resources' | 'prompts'): Dispose {
    providers.add(provider)
    this.#tell({ list })
    return () => {
      providers.delete(provider)
      this.#tell({ list })
    }
  }
  #tell(changed: McpChanged): void {
    for (const listener of this.#listeners) listener(changed)
  }
}
