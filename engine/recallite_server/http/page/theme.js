// Sets the chosen theme before the first paint; without a choice the system's holds.
(() => {
  try {
    const chosen = localStorage.getItem("recallite-theme");
    if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  } catch {
    // Storage is blocked: the system's theme holds.
  }
})();
