import { useEffect, useRef, useState } from 'preact/hooks'
import './agent-menu.css'
import type { DialogName } from './conversation-dialog.tsx'
import { MoreIcon } from './icons.tsx'
import type { AgentSummary } from './wire.ts'

interface AgentMenuProps {
  readonly agent: AgentSummary
  /** The page where the manifest of an agent is edited. */
  readonly editUrl: string | undefined
  readonly onDialog: (name: DialogName) => void
  readonly onMove: (command: 'suspend' | 'resume') => void
}

/** What is done with an agent less often than talking to it. */
export function AgentMenu({ agent, editUrl, onDialog, onMove }: AgentMenuProps) {
  const [open, setOpen] = useState(false)
  const menu = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  useCloseElsewhere(menu, open, () => setOpen(false))
  const item = (label: string, action: () => void, className?: string) => (
    <li>
      <button
        type="button"
        class={className}
        onClick={() => {
          setOpen(false)
          // A dialog that closes gives the focus back to it.
          button.current?.focus()
          action()
        }}
      >
        {label}
      </button>
    </li>
  )
  return (
    <div
      ref={menu}
      class="agent-menu"
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !open) return
        event.preventDefault()
        setOpen(false)
        button.current?.focus()
      }}
    >
      <button
        type="button"
        ref={button}
        class="quiet square"
        aria-expanded={open}
        aria-controls="agent-actions"
        onClick={() => setOpen(!open)}
      >
        <MoreIcon />
        <span class="hidden">More for {agent.name}</span>
      </button>
      {open && (
        <ul id="agent-actions">
          {editUrl !== undefined && (
            <li>
              <a href={`${editUrl}#edit=${agent.id}`}>Edit</a>
            </li>
          )}
          {item('Duplicate …', () => onDialog('duplicate'))}
          {agent.state === 'Paused' ? item('Resume', () => onMove('resume')) : item('Pause', () => onMove('suspend'))}
          {item('Delete …', () => onDialog('remove'), 'destructive')}
        </ul>
      )}
    </div>
  )
}

function useCloseElsewhere(menu: { readonly current: HTMLElement | null }, open: boolean, close: () => void): void {
  useEffect(() => {
    if (!open) return
    const closeElsewhere = ({ target }: Event): void => {
      if (!(target instanceof Node && menu.current?.contains(target))) close()
    }
    for (const type of ['pointerdown', 'focusin']) document.addEventListener(type, closeElsewhere)
    return () => {
      for (const type of ['pointerdown', 'focusin']) document.removeEventListener(type, closeElsewhere)
    }
  }, [open])
}
