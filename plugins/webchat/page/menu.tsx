import { useId, useRef } from 'preact/hooks'
import { MoreIcon } from './icons.tsx'
import './menu.css'

export interface MenuItem {
  readonly label: string
  readonly onSelect: () => void
}

interface MenuProps {
  /** What the actions are for. */
  readonly label: string
  readonly items: readonly MenuItem[]
}

/** A button that opens a list of actions. The browser closes it on Escape and gives the focus back. */
export function Menu({ label, items }: MenuProps) {
  const id = useId()
  const menu = useRef<HTMLDivElement>(null)
  const select = ({ onSelect }: MenuItem): void => {
    menu.current?.hidePopover()
    onSelect()
  }
  return (
    <>
      <button type="button" class="quiet square menu-button" popovertarget={id} aria-haspopup="menu">
        <MoreIcon />
        <span class="hidden">{label}</span>
      </button>
      <div
        ref={menu}
        id={id}
        class="menu"
        popover="auto"
        role="menu"
        aria-label={label}
        onToggle={({ newState }) => {
          if (newState === 'open') menu.current?.querySelector('button')?.focus()
        }}
        onKeyDown={(event) => {
          // Neither the answer that runs nor the drawer has to do with this key.
          if (event.key === 'Escape') event.stopPropagation()
          else if (event.key === 'Tab') menu.current?.hidePopover()
          else if (moveFocus(event.currentTarget, event.key)) event.preventDefault()
        }}
      >
        {items.map((item) => (
          <button
            key={item.label}
            type="button"
            class="quiet"
            role="menuitem"
            tabIndex={-1}
            onClick={() => select(item)}
          >
            {item.label}
          </button>
        ))}
      </div>
    </>
  )
}

/** Whether the key moves the focus in a menu. */
function moveFocus(menu: HTMLElement, key: string): boolean {
  const items = [...menu.querySelectorAll('button')]
  const focused = items.findIndex((item) => item === document.activeElement)
  const next = { ArrowDown: focused + 1, ArrowUp: focused - 1, Home: 0, End: items.length - 1 }[key]
  if (next === undefined) return false
  items.at(next % items.length)?.focus()
  return true
}
