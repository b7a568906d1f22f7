import { copyText } from './clipboard.ts'

/** Adds to sanitised text what it cannot bring itself: copy buttons, safe links, scrolling for what is wide. */
export function dress(fragment: DocumentFragment): void {
  for (const link of fragment.querySelectorAll('a')) {
    link.target = '_blank'
    link.rel = 'noopener noreferrer nofollow'
  }
  for (const box of fragment.querySelectorAll('input')) {
    // Only the boxes of task lists, which show and do not take input.
    if (box.type === 'checkbox') {
      box.disabled = true
      box.setAttribute('aria-label', box.checked ? 'done' : 'to do')
    } else box.remove()
  }
  for (const block of fragment.querySelectorAll<HTMLPreElement>('pre:not([data-math])'))
    block.replaceWith(codeFigure(block))
  for (const table of fragment.querySelectorAll('table')) {
    const frame = element('div', 'table-frame')
    frame.tabIndex = 0
    frame.setAttribute('role', 'region')
    frame.setAttribute('aria-label', 'Table')
    table.replaceWith(frame)
    frame.append(table)
  }
}

function codeFigure(block: HTMLPreElement): HTMLElement {
  const figure = element('div', 'code')
  const bar = element('div', 'code-bar')
  const language = element('span', 'code-language')
  language.textContent = block.dataset['language'] === '' ? 'text' : (block.dataset['language'] ?? 'text')
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'code-copy'
  button.textContent = 'Copy'
  button.setAttribute('aria-label', `Copy this ${language.textContent} block`)
  const text = block.textContent
  button.addEventListener('click', () => {
    void copyText(text).then((copied) => {
      button.textContent = copied ? 'Copied' : 'Press Ctrl+C'
    })
  })
  button.addEventListener('blur', () => {
    button.textContent = 'Copy'
  })
  bar.append(language, button)
  const copy = document.createElement('pre')
  copy.tabIndex = 0
  copy.dataset['language'] = block.dataset['language'] ?? ''
  copy.append(...block.childNodes)
  figure.append(bar, copy)
  return figure
}

function element(tag: 'div' | 'span', className: string): HTMLElement {
  const made = document.createElement(tag)
  made.className = className
  return made
}
