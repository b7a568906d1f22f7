/** What commands of other plugins may use to show approvals and answer them. */
export { lettersOf, renderDetails, renderQuestion } from './approval.ts'
export type { Approval } from './approval.ts'
export { ApprovalPrompt } from './prompt.ts'
