// What one view leaves for another, for as long as the page is open.

export const shared = { lastRecall: null };
