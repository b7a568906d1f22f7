/** What an interactive command draws with; imported where there is a terminal. */
export { LineHistory } from './history.ts'
export { readLines } from './line-editor.ts'
export { TerminalView } from './markdown-view.ts'
export { Screen } from './screen.ts'
