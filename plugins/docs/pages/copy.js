import { element } from '../../kit/kit.js'

/** Puts a block of code into a frame with a button that copies it. */
export function addCopyButton(block) {
  const button = element('button', { type: 'button', className: 'copy', 'aria-label': 'Copy this block' }, 'Copy')
  button.addEventListener('click', async () => {
    button.textContent = (await copy(block.textContent, block)) ? 'Copied' : 'Press Ctrl+C'
  })
  button.addEventListener('blur', () => {
    button.textContent = 'Copy'
  })
  const frame = element('div', { className: 'code' })
  block.replaceWith(frame)
  frame.append(block, button)
}

/** A page loaded over plain HTTP from another machine has no clipboard: then the text is selected. */
async function copy(text, block) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    getSelection().selectAllChildren(block)
    return false
  }
}
