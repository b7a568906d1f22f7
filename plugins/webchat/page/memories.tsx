import { createContext } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'
import { ApiError, explain } from './api.ts'
import type { Api } from './api.ts'
import type { UsedMemory } from './wire.ts'

/** Turns of one request. */
const maxTurns = 100

/** Which memories the turns of the answers in view were told of. */
export class MemoryUses {
  readonly #api: Api
  readonly #pageUrl: string
  #asked = new Map<string, (count: number) => void>()
  /** `pageUrl`: where the memories are shown. */
  constructor(api: Api, pageUrl: string) {
    this.#api = api
    this.#pageUrl = pageUrl
  }

  /** 0 also where that cannot be read. All that is asked for at once goes into one request. */
  count(turnId: string): Promise<number> {
    if (this.#asked.size === 0) queueMicrotask(() => void this.#read())
    return new Promise((resolve) => this.#asked.set(turnId, resolve))
  }
  read(turnId: string): Promise<{ readonly memories: readonly UsedMemory[]; readonly forgotten: number }> {
    return this.#api.usedMemories(turnId)
  }
  urlOf(memoryId: string): string {
    return `${this.#pageUrl}#${memoryId}`
  }

  async #read(): Promise<void> {
    const asked = [...this.#asked]
    this.#asked = new Map()
    for (let from = 0; from < asked.length; from += maxTurns) {
      const part = asked.slice(from, from + maxTurns)
      const counts = await this.#counts(part.map(([turnId]) => turnId))
      for (const [turnId, resolve] of part) resolve(counts.get(turnId) ?? 0)
    }
  }
  async #counts(turnIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    try {
      return await this.#api.memoryCounts(turnIds)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error // The answers are of use without.
      return new Map()
    }
  }
}
/** `undefined` while no plugin remembers. */
export const MemoryReader = createContext<MemoryUses | undefined>(undefined)

/** What the agent remembered when it answered, with where it knows it from. */
export function UsedMemories({ turnId }: { readonly turnId: string }) {
  const uses = useContext(MemoryReader)
  const [count, setCount] = useState(0)
  useEffect(() => {
    let isGone = false
    void uses?.count(turnId).then((found) => {
      if (!isGone) setCount(found)
    })
    return () => {
      isGone = true
    }
  }, [turnId, uses])
  if (!uses || count === 0) return null
  return <Details uses={uses} turnId={turnId} count={count} />
}

function Details({
  uses,
  turnId,
  count,
}: {
  readonly uses: MemoryUses
  readonly turnId: string
  readonly count: number
}) {
  const [found, setFound] = useState<Awaited<ReturnType<MemoryUses['read']>>>()
  const [problem, setProblem] = useState<string>()
  const read = (): void => {
    setProblem(undefined)
    uses.read(turnId).then(setFound, (error: unknown) => setProblem(explain(error)))
  }
  return (
    <details class="used-memories" onToggle={({ currentTarget }) => currentTarget.open && read()}>
      <summary>used {count === 1 ? '1 memory' : `${count} memories`}</summary>
      {problem !== undefined && <p role="alert">The memories cannot be shown: {problem}</p>}
      {found && (
        <ul>
          {found.memories.map(({ id, content, source, created_at: at }) => (
            <li key={id}>
              <a href={uses.urlOf(id)} target="_blank" rel="noopener">
                {content}
              </a>{' '}
              ({source}, {new Date(at).toLocaleDateString()})
            </li>
          ))}
          {found.forgotten > 0 && <li>{found.forgotten} forgotten since</li>}
        </ul>
      )}
    </details>
  )
}
