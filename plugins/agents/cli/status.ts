import type { StatusLines } from 'svc/cli'

const lines: StatusLines = ({ agent_count: count }) => [['agents', String(count)]]
export default lines
