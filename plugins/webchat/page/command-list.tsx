import { useLayoutEffect, useState } from 'preact/hooks'
import type { SlashCommand } from './wire.ts'

interface CommandChoice {
  readonly command: string
  readonly description: string
}

/** The slash commands that a draft may become, and the one that is selected. */
export function useCommandList(draft: string, commands: readonly SlashCommand[], onChoose: (command: string) => void) {
  const [selected, setSelected] = useState(0)
  /** The draft for which the list was closed. */
  const [closedFor, setClosedFor] = useState<string>()
  const choices = closedFor === draft ? [] : matching(draft, commands)
  const open = choices.length > 0
  const index = Math.min(selected, choices.length - 1)
  useLayoutEffect(() => {
    if (open) document.getElementById(`command-${index}`)?.scrollIntoView({ block: 'nearest' })
  }, [index, open])

  const choose = (command: string): void => {
    setClosedFor(command)
    onChoose(command)
  }
  /** Whether the open list handled the key; every other key edits the message. */
  const handleKey = (event: KeyboardEvent): boolean => {
    const command = choices[index]?.command
    if (command === undefined || event.isComposing) return false
    switch (event.key) {
      case 'ArrowDown':
        setSelected((index + 1) % choices.length)
        return true
      case 'ArrowUp':
        setSelected((index + choices.length - 1) % choices.length)
        return true
      case 'Tab':
      case 'Enter':
        if (event.shiftKey) return false
        choose(command)
        return true
      case 'Escape':
        setClosedFor(draft)
        return true
      default:
        return false
    }
  }
  return { choices, open, index, select: setSelected, choose, handleKey }
}

function matching(draft: string, commands: readonly SlashCommand[]): readonly CommandChoice[] {
  if (!/^\/\w*$/.test(draft)) return []
  const prefix = draft.toLowerCase()
  return commands
    .filter(({ name, aliases }) => [name, ...aliases].some((each) => `/${each}`.startsWith(prefix)))
    .map(({ name, description }) => ({ command: `/${name}`, description }))
    .filter(({ command }) => command !== draft)
}

export function CommandList({ list }: { readonly list: ReturnType<typeof useCommandList> }) {
  return (
    <ul id="commands" class="commands" role="listbox" aria-label="Commands">
      {list.choices.map(({ command, description }, index) => (
        <li
          key={command}
          id={`command-${index}`}
          role="option"
          aria-selected={index === list.index}
          // Runs before the message box loses the focus.
          onMouseDown={(event) => {
            event.preventDefault()
            list.choose(command)
          }}
          onMouseMove={() => list.select(index)}
        >
          <code>{command}</code> {description}
        </li>
      ))}
    </ul>
  )
}
